-- Keys that may stand in a page, with the origins they may be used from; what a key begins with and when it
-- was last used, so that people can tell theirs apart. `revoked_at` may lie ahead: a key that is rotated ends
-- when its successor is in place.
ALTER TABLE "api_key"
    DROP CONSTRAINT "api_key_kind_check",
    ADD CONSTRAINT "api_key_kind_check" CHECK ("kind" IN ('secret', 'publishable', 'operator')),
    ADD COLUMN "origins" TEXT[] NOT NULL DEFAULT '{}',
    ADD COLUMN "prefix" TEXT NOT NULL DEFAULT '',
    ADD COLUMN "last_used_at" TIMESTAMPTZ(3);

-- What support did about a recipient, by whose key and why.
CREATE TABLE "operation" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "app" TEXT NOT NULL,
    "recipient_hash" BYTEA NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT now(),
    "key_id" UUID NOT NULL,
    "what" TEXT[] NOT NULL,
    "reason" TEXT NOT NULL,

    CONSTRAINT "operation_pkey" PRIMARY KEY ("id")
);

CREATE INDEX "operation_recipient_hash_at_idx" ON "operation" ("recipient_hash", "at");
CREATE INDEX "operation_at_idx" ON "operation" ("at");
