-- Lines are kept apart by how easily they are made: calls, what people do to credentials and rights,
-- and what operators do. Each lane has its own bound, so none pushes the lines of another out.
ALTER TABLE audit ADD COLUMN lane TEXT NOT NULL DEFAULT 'operators';
UPDATE audit SET lane = 'calls'
    WHERE action IN ('backend.call', 'hub.call', 'policy.refused', 'room.blocked');

CREATE INDEX audit_lanes ON audit (lane, id);
