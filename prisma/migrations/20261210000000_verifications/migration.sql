-- Verifications with several ways to the person: docs/decisions/0018.
CREATE TABLE "verification" (
  "id" uuid PRIMARY KEY,
  "app" text NOT NULL,
  "scene" text NOT NULL,
  "workflow" text NOT NULL,
  "sealed" bytea NOT NULL,
  "key_id" text NOT NULL,
  "is_page" boolean NOT NULL,
  "ways" integer NOT NULL,
  "notices" uuid[] NOT NULL DEFAULT '{}',
  "next_id" uuid,
  "ended" text,
  "ends_at" timestamptz(3) NOT NULL,
  "due_at" timestamptz(3)
);
CREATE INDEX "verification_ends_at_idx" ON "verification" ("ends_at");
CREATE INDEX "verification_due_at_idx" ON "verification" ("due_at");
ALTER TABLE "notice" ADD COLUMN "verification_id" uuid;
