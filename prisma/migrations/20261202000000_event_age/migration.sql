-- The age of the oldest event is read for the console and a gauge, also while millions wait for a receiver.
CREATE INDEX "event_created_at_idx" ON "event" ("created_at");
