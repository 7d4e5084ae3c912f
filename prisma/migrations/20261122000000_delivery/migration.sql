-- When a notice is wanted, for those that were asked for ahead of time.
ALTER TABLE "notice" ADD COLUMN "send_at" TIMESTAMPTZ(3);

-- By which a receipt finds its notice.
CREATE INDEX "notice_provider_provider_message_id_idx" ON "notice" ("provider", "provider_message_id")
    WHERE "provider_message_id" IS NOT NULL;

-- Receipts whose notice is not known as sent yet: the far end was faster than our own write-back. They
-- are looked at again until they fit, at growing intervals, for an hour.
CREATE TABLE "early_receipt" (
    "provider" TEXT NOT NULL,
    -- The far end's message id, or the notice id where it has none.
    "reference" TEXT NOT NULL,
    "message_id" TEXT,
    "notice_id" UUID,
    "outcome" TEXT NOT NULL CHECK ("outcome" IN ('delivered', 'failed')),
    "detail" TEXT,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "look_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "early_receipt_pkey" PRIMARY KEY ("provider", "reference")
);

CREATE INDEX "early_receipt_look_at_idx" ON "early_receipt" ("look_at");
CREATE INDEX "early_receipt_notice_id_idx" ON "early_receipt" ("notice_id") WHERE "notice_id" IS NOT NULL;

-- How far retention has come: every recipient before this id is erased.
CREATE TABLE "retention" (
    "task" TEXT NOT NULL,
    "reached" UUID NOT NULL,

    CONSTRAINT "retention_pkey" PRIMARY KEY ("task")
);
