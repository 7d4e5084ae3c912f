-- Room in each page, so that erasing a recipient changes no index (src/upkeep/erase.ts). For pages written from now on;
-- reads and writes go on. Partitions get the same when they are made.
ALTER TABLE "notice_default" SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.1);
