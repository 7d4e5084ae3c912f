-- A notice id is a UUIDv7, so a range of ids is a range of time: partitions by id keep the primary key
-- one column wide, and a look-up by id touches one partition. Monthly partitions are made ahead by the
-- worker; the default partition takes what comes when none was made.
CREATE TABLE "notice" (
    "id" UUID NOT NULL,
    "app" TEXT NOT NULL,
    "kind" TEXT NOT NULL CHECK ("kind" IN ('captcha', 'notice')),
    "channel" TEXT NOT NULL CHECK ("channel" IN ('sms', 'email')),
    "recipient" TEXT,
    "recipient_hash" BYTEA NOT NULL,
    "scene" TEXT,
    "template" TEXT NOT NULL,
    "locale" TEXT NOT NULL,
    "sealed_params" BYTEA,
    "state" TEXT NOT NULL DEFAULT 'pending'
        CHECK ("state" IN ('pending', 'sending', 'sent', 'delivered', 'failed', 'expired')),
    "due_at" TIMESTAMPTZ(3),
    "claims" INTEGER NOT NULL DEFAULT 0,
    "attempts" JSONB NOT NULL DEFAULT '[]',
    "provider" TEXT,
    "provider_message_id" TEXT,
    "error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "sent_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "notice_pkey" PRIMARY KEY ("id"),
    -- An open row is due some time and a finished one never, so the index below holds only open rows.
    CONSTRAINT "notice_due_while_open" CHECK (("state" IN ('pending', 'sending')) = ("due_at" IS NOT NULL)),
    -- A finished row keeps no code.
    CONSTRAINT "notice_sealed_while_open" CHECK ("state" IN ('pending', 'sending') OR "sealed_params" IS NULL)
) PARTITION BY RANGE ("id");

CREATE TABLE "notice_default" PARTITION OF "notice" DEFAULT;

CREATE INDEX "notice_recipient_hash_id_idx" ON "notice" ("recipient_hash", "id");
CREATE INDEX "notice_due_at_idx" ON "notice" ("due_at") WHERE "due_at" IS NOT NULL;

-- The moves of src/notice/states.ts, held here too so that no code path and no hand can break them.
CREATE FUNCTION "notice_check_move"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD."state", NEW."state") NOT IN (
        ('pending', 'sending'), ('pending', 'expired'), ('pending', 'failed'),
        ('sending', 'pending'), ('sending', 'sent'), ('sending', 'failed'), ('sending', 'expired'),
        ('sent', 'delivered'), ('sent', 'failed')
    ) THEN
        RAISE EXCEPTION 'notice % may not move from % to %', OLD."id", OLD."state", NEW."state"
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER "notice_check_move" BEFORE UPDATE ON "notice"
    FOR EACH ROW WHEN (OLD."state" IS DISTINCT FROM NEW."state") EXECUTE FUNCTION "notice_check_move"();

CREATE TABLE "api_key" (
    "id" UUID NOT NULL,
    "app" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "kind" TEXT NOT NULL CHECK ("kind" IN ('secret')),
    "hash" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "revoked_at" TIMESTAMPTZ(3),

    CONSTRAINT "api_key_pkey" PRIMARY KEY ("id")
);

CREATE UNIQUE INDEX "api_key_hash_key" ON "api_key" ("hash");

-- What an Idempotency-Key stands for: the notice id is reserved here before anything else happens, so a
-- repeat of the request can only ever make that one notice.
CREATE TABLE "idempotency_key" (
    "app" TEXT NOT NULL,
    "key_hash" BYTEA NOT NULL,
    "request_hash" BYTEA NOT NULL,
    "notice_id" UUID NOT NULL,
    "answer" JSON,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "idempotency_key_pkey" PRIMARY KEY ("app", "key_hash")
);

CREATE INDEX "idempotency_key_created_at_idx" ON "idempotency_key" ("created_at");
