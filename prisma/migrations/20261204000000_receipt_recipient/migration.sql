-- A receipt over SMPP can write its id in another base, and names the number of the recipient.
ALTER TABLE "early_receipt" ADD COLUMN "other_message_id" TEXT;
ALTER TABLE "early_receipt" ADD COLUMN "recipients" TEXT;
