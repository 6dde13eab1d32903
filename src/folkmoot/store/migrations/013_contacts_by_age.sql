-- Contacts are listed by handle; nothing reads them by age any more.
DROP INDEX contacts_by_age;
