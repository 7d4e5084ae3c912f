-- Decisions of the limits and results of checks (src/support/decision.ts). `times` is the number of equal ones. A row without
-- a recipient counts those that had no room as rows of their own. Partitions of a week, like those of the notices.
CREATE TABLE "decision" (
    "at" TIMESTAMPTZ(3) NOT NULL,
    "app" TEXT NOT NULL,
    "channel" TEXT NOT NULL,
    "outcome" TEXT NOT NULL,
    "times" INTEGER NOT NULL,
    "recipient_hash" BYTEA,
    -- The policy of the limit check, and the rule with the policy that declares it.
    "policy" TEXT,
    "rule_policy" TEXT,
    "rule" TEXT,
    "rule_window" TEXT,
    "retry_after_ms" DOUBLE PRECISION,
    "is_solved" BOOLEAN,
    -- The notice of an admitted send, or of the code that a check compared.
    "notice_id" UUID,
    -- The fields that rules count by; personal values as short keyed hashes.
    "fields" JSONB,
    -- The fields that the count of the rule needs beside its recipient, encrypted.
    "sealed_values" TEXT,
    -- Admitted sends are rows for 1 of 2^share recipients.
    "share" SMALLINT NOT NULL DEFAULT 0
) PARTITION BY RANGE ("at");

CREATE TABLE "decision_default" PARTITION OF "decision" DEFAULT;

CREATE INDEX "decision_recipient_hash_app_at_idx" ON "decision" ("recipient_hash", "app", "at");
CREATE INDEX "decision_at_idx" ON "decision" ("at");
