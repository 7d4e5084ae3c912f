-- Recipients that get nothing: a provider reported a bounce, a complaint or an opt-out (src/notice/suppressions.ts).
CREATE TABLE "suppression" (
    "app" TEXT NOT NULL,
    "recipient_hash" BYTEA NOT NULL,
    "reason" TEXT NOT NULL CHECK ("reason" IN ('bounced', 'complained', 'opted_out')),
    "provider" TEXT NOT NULL,
    -- The time of the report.
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    -- A right code, the person or support ended it.
    "ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "suppression_pkey" PRIMARY KEY ("recipient_hash", "app", "reason", "provider")
);

CREATE INDEX "suppression_at_idx" ON "suppression" ("at");

-- What an early receipt reports besides the state. Workers of earlier builds read "outcome" alone.
ALTER TABLE "early_receipt" ADD COLUMN "suppresses" TEXT;
