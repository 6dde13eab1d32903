-- From here on what is deleted is overwritten. A database that was in use before has what was deleted
-- until then in its unused space, which is to be cleaned once. A new one has no id yet, and nothing
-- to clean.
INSERT INTO meta (key, value)
    SELECT 'unused_space', 'to be cleaned' FROM meta WHERE key = 'database_id';
