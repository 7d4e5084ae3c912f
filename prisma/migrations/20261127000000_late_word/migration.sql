-- A worker whose claim had ended, and whose notice was given up for lost (`sending` to `pending`), may
-- still say that it was sent, as long as no other worker has claimed it since.
CREATE OR REPLACE FUNCTION "notice_check_move"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD."state", NEW."state") NOT IN (
        ('pending', 'sending'), ('pending', 'sent'), ('pending', 'expired'), ('pending', 'failed'),
        ('sending', 'pending'), ('sending', 'sent'), ('sending', 'failed'), ('sending', 'expired'),
        ('sent', 'delivered'), ('sent', 'failed')
    ) THEN
        RAISE EXCEPTION 'notice % may not move from % to %', OLD."id", OLD."state", NEW."state"
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
