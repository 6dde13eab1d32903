-- What a guest shall hold from the start, and the message that invited it: the grant has its name.
ALTER TABLE room_guests ADD COLUMN capabilities TEXT NOT NULL DEFAULT '[]';
ALTER TABLE room_guests ADD COLUMN invite_id TEXT NOT NULL DEFAULT '';
