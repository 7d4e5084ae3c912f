-- Rows that only count, by their time: the console sums all of an hour's, and only some of the others.
CREATE INDEX "decision_counted_at_idx" ON "decision" ("at") WHERE "recipient_hash" IS NULL;
