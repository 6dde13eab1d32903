-- What the owner of a client's key reads in a box beside plain text: names, separated by spaces.
ALTER TABLE users ADD COLUMN payload_formats TEXT NOT NULL DEFAULT '';
