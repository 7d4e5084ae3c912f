-- How a code ended: passed, tries (none are left) or canceled. No CHECK: it would read every row under a lock.
ALTER TABLE "notice" ADD COLUMN "code_end" TEXT;

-- The end that a key got when it was made.
ALTER TABLE "api_key" ADD COLUMN "expires_at" TIMESTAMPTZ(3);
