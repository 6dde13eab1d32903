-- The scope of the session that an operator's code opens; without one it is that of an account.
ALTER TABLE browser_codes ADD COLUMN scope TEXT;
