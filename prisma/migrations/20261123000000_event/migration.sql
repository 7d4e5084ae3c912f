-- What is still to be told to the receivers of events (src/events). Written in the statement that makes
-- it true; a row leaves when its receiver has taken it, or after a day of trying.
CREATE TABLE "event" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "app" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    -- Never a code, a text or a readable recipient.
    "data" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "due_at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "tries" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "event_pkey" PRIMARY KEY ("id")
);

CREATE INDEX "event_due_at_idx" ON "event" ("due_at");
