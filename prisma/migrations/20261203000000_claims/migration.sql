-- The claim of a worker: {id, provider, kind}. A worker takes back its own claim if the answer was lost, and an attempt that
-- was lost with its worker has the provider.
ALTER TABLE "notice" ADD COLUMN "claim" JSONB;

-- A repeat of its request was answered with this notice, so the first request no longer closes it.
ALTER TABLE "notice" ADD COLUMN "is_adopted" BOOLEAN NOT NULL DEFAULT false;

-- How a worker must read the row and find its code. A worker that does not know the format leaves the row to a newer worker.
ALTER TABLE "notice" ADD COLUMN "format" SMALLINT NOT NULL DEFAULT 1;
