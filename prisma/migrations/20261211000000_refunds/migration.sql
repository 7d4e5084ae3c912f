-- A refund in a receipt that came before its notice was written as sent.
ALTER TABLE "early_receipt" ADD COLUMN "is_refunded" boolean NOT NULL DEFAULT false;
