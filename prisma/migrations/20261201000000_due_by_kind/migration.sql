-- Open notices by kind, so that the search for overdue codes reads no bulk. It replaces the index on `due_at` alone, so a
-- send writes as many entries as before. The build reads every row while sends wait. No release has had rows yet.
CREATE INDEX "notice_kind_due_at_idx" ON "notice" ("kind", "due_at") WHERE "due_at" IS NOT NULL;
DROP INDEX "notice_due_at_idx";
