import type { MutantRoom } from './mutant.ts'

export const room: MutantRoom = {
  tests: [
    'test/notice/store',
    'test/notice/create',
    'test/receipt/receipts',
    'test/upkeep/reconcile',
    'test/upkeep/retention',
    'test/idempotency/idempotency',
  ],
  mutants: [
    // Making
    {
      breaks: 'a row is due only when its time is over',
      find: "* interval '1 millisecond', coalesce(send_at, now())\n",
      replace:
        "* interval '1 millisecond', coalesce(send_at, now()) + ttl_ms * interval '1 millisecond'\n",
      tests: ['test/notice/store'],
    },
    {
      breaks: 'the time to live of a scheduled notice counts from its creation',
      find: "coalesce(send_at, now()) + ttl_ms * interval '1 millisecond',",
      replace: "now() + ttl_ms * interval '1 millisecond',",
      tests: [
        'test/notice/store',
        'test/notice/create',
        'test/delivery/worker',
        'test/http/boundaries',
      ],
    },
    {
      breaks: 'an id that is there already is an error of the whole batch',
      find: '  ON CONFLICT (id) DO NOTHING\n  RETURNING id, (extract',
      replace: '  RETURNING id, (extract',
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a repeated id in one batch is told as made twice',
      find: '        created.delete(id)\n',
      replace: '',
      tests: ['test/notice/store'],
    },
    {
      breaks: 'the recipient is found by a hash without its channel',
      find: 'secrets.recipientHashes(notice.channel, notice.to)[0] as Buffer',
      replace: "secrets.recipientHashes('', notice.to)[0] as Buffer",
      tests: ['test/notice/create'],
    },
    {
      breaks: 'the variables are sealed under no context',
      find: 'secrets.seal(JSON.stringify(params), notice.id)',
      replace: "secrets.seal(JSON.stringify(params), '')",
      tests: ['test/notice/create'],
    },
    {
      breaks: 'a scheduled notice is on the queue at once',
      find: 'const delayMs = Math.max(0, (notice.sendAt?.getTime() ?? 0) - Date.now())',
      replace: 'const delayMs = Math.min(0, (notice.sendAt?.getTime() ?? 0) - Date.now())',
      tests: ['test/notice/create'],
    },
    {
      breaks: 'a queue that is away fails the send',
      find: 'producer.add({ id, kind, channel, delayMs }).catch((error) => log.enqueueFailed(1, error))',
      replace: 'await producer.add({ id, kind, channel, delayMs })',
      tests: ['test/notice/create'],
    },
    {
      breaks: 'a row whose commit was lost is sent all the same',
      find: 'if (error instanceof Unavailable) creating.then(closeRow, closeRow)',
      replace: 'if (!(error instanceof Unavailable)) creating.then(closeRow, closeRow)',
      tests: ['test/notice/create'],
    },
    {
      breaks: 'a row that appears late is not closed',
      find: 'creating.then(closeRow, closeRow)',
      replace: 'creating.then(() => {}, closeRow)',
      tests: ['test/notice/create'],
    },
    {
      breaks: 'accepted is counted before the commit',
      find: '    if (timeoutMs <= 0) throw outOfTime()\n    const creating',
      replace:
        '    metrics.accepted.inc({ kind: notice.kind, channel: notice.channel })\n    if (timeoutMs <= 0) throw outOfTime()\n    const creating',
      tests: ['test/notice/create'],
    },
    {
      breaks: 'a request without time left makes a notice',
      find: '    if (timeoutMs <= 0) throw outOfTime()\n    const creating',
      replace: '    const creating',
      tests: ['test/notice/create'],
    },
    // Claiming and recording
    {
      breaks: 'a notice in the hands of another worker is open',
      find: "(n.state = 'pending' OR (n.state = 'sending' AND n.due_at <= now()))",
      replace: "(n.state = 'pending' OR n.state = 'sending')",
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a claim that ended is never taken over',
      find: "(n.state = 'pending' OR (n.state = 'sending' AND n.due_at <= now()))",
      replace: "(n.state = 'pending')",
      tests: ['test/notice/store'],
    },
    {
      breaks: 'whoever looked first may claim, whatever happened since',
      find: 'WHERE n.id = seen.id AND n.claims = seen.claims AND ${byIndex} AND ${isFree}',
      replace: 'WHERE n.id = seen.id AND ${byIndex} AND ${isFree}',
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a claim is not counted',
      find: '      claims = n.claims + 1,\n',
      replace: '',
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a claim has no end',
      find: "due_at = now() + $3 * interval '1 millisecond',\n      attempts = ${attemptsWithLostOne}\n  FROM unnest",
      replace:
        "due_at = now() + $3 * interval '1 day',\n      attempts = ${attemptsWithLostOne}\n  FROM unnest",
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a scheduled notice is claimed before its time',
      find: '    AND (n.send_at IS NULL OR n.send_at <= now())\n',
      replace: '',
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a lost try is not on the account',
      find: "CASE WHEN n.state = 'pending' THEN n.attempts ELSE n.attempts || jsonb_build_object(",
      replace:
        "CASE WHEN n.state <> 'delivered' THEN n.attempts ELSE n.attempts || jsonb_build_object(",
      tests: ['test/notice/store'],
    },
    {
      breaks: 'two that claim in one batch both get the notice',
      find: '        claimed.delete(id)\n',
      replace: '',
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a worker that lost its claim writes its outcome',
      find: "n.state IN ('pending', 'sending') AND n.claims = new.claims",
      replace: "n.state IN ('pending', 'sending')",
      tests: ['test/notice/store'],
    },
    {
      breaks: 'the variables stay in a finished row',
      find: "sealed_params = CASE WHEN new.state = 'pending' THEN n.sealed_params END,",
      replace: 'sealed_params = n.sealed_params,',
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a try again loses the variables',
      find: "sealed_params = CASE WHEN new.state = 'pending' THEN n.sealed_params END,",
      replace: 'sealed_params = NULL,',
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a retry is due at once',
      find: "THEN now() + new.retry_in_ms * interval '1 millisecond' END,",
      replace: "THEN now() + 0 * new.retry_in_ms * interval '1 millisecond' END,",
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a failed notice has a sending time',
      find: "sent_at = CASE WHEN new.state = 'sent' THEN now() END,",
      replace: "sent_at = CASE WHEN new.state <> 'pending' THEN now() END,",
      tests: ['test/notice/store'],
    },
    {
      breaks: 'a pending notice has an end',
      find: "finished_at = CASE WHEN new.state <> 'pending' THEN now() END\n",
      replace: 'finished_at = now()\n',
      tests: ['test/notice/store'],
    },
    {
      breaks: 'the provider of a notice that is tried again is forgotten',
      find: 'provider = coalesce(new.provider, n.provider),',
      replace: 'provider = new.provider,',
      mayLive: 'only a final outcome names a provider, and nothing is written after it',
      tests: ['test/notice/store', 'test/receipt/receipts'],
    },
    // The reconciler and what it takes
    {
      breaks: 'overdue notices are taken without grace',
      find: "SELECT id FROM notice WHERE due_at < now() - $2 * interval '1 millisecond'",
      replace: "SELECT id FROM notice WHERE due_at < now() - 0 * $2 * interval '1 millisecond'",
      tests: ['test/notice/store', 'test/upkeep/reconcile'],
    },
    {
      breaks: 'the reconciler asks with a grace of 0',
      find: 'const graceMs = 5_000\n',
      replace: 'const graceMs = 0\n',
      tests: ['test/upkeep/reconcile'],
    },
    {
      breaks: 'what was taken is taken again by the next pass',
      find: "SET state = 'pending',\n      due_at = now() + $3 * interval '1 millisecond',",
      replace: "SET state = 'pending',\n      due_at = now() - $3 * interval '1 millisecond',",
      tests: ['test/notice/store', 'test/upkeep/reconcile'],
    },
    {
      breaks: 'wasAway is ignored',
      find: 'const overdue = wasAway ? [] : await store',
      replace: 'const overdue = await store',
      tests: ['test/upkeep/reconcile'],
    },
    {
      breaks: 'a process that has just started takes what others hold',
      find: 'let wasAway = true\n',
      replace: 'let wasAway = false\n',
      tests: ['test/upkeep/reconcile'],
    },
    {
      breaks: 'a look that failed is followed by one that takes everything',
      find: '      wasAway = true\n      throw error',
      replace: '      throw error',
      tests: ['test/upkeep/reconcile'],
    },
    {
      breaks: 'the reconciler takes nothing after its first look',
      find: '      wasAway = false\n',
      replace: '',
      tests: ['test/upkeep/reconcile'],
    },
    {
      breaks: 'early receipts that fail keep notices from the queue',
      find: '    await requeue().catch((error) => log',
      replace: '    await sweepReceipts()\n    await requeue().catch((error) => log',
      tests: ['test/upkeep/reconcile'],
    },
    {
      breaks: 'what was put back is not counted',
      find: 'metrics.reconciled.inc(overdue.length)',
      replace: 'metrics.reconciled.inc(1)',
      tests: ['test/upkeep/reconcile'],
    },
    {
      breaks: 'a notice that a worker has claimed is abandoned',
      find: "WHERE id = ANY($1::uuid[]) AND state = 'pending' AND claims = 0",
      replace: "WHERE id = ANY($1::uuid[]) AND state IN ('pending', 'sending')",
      tests: ['test/notice/store'],
    },
    // Receipts
    {
      breaks: 'the last receipt of a batch wins',
      find: "WHERE state = 'sent' ORDER BY id, n\n",
      replace: "WHERE state = 'sent' ORDER BY id, n DESC\n",
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: 'a receipt moves a notice that has ended',
      find: "FROM first WHERE notice.id = first.id AND notice.state = 'sent'",
      replace: 'FROM first WHERE notice.id = first.id',
      mayLive:
        'only rows that are sent are in `first`, and the trigger of the table refuses the rest',
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: "another provider's word moves a notice",
      find: 'WHERE id = r.notice_id AND provider = r.provider\n',
      replace: 'WHERE id = r.notice_id\n',
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: 'a word about another message moves a notice',
      find: '        AND coalesce(provider_message_id = r.message_id, true)\n',
      replace: '',
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: 'the reason of a failed delivery is lost',
      find: "THEN 'not_delivered' || coalesce(' (' || first.detail || ')', '') END",
      replace: "THEN 'not_delivered' END",
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: 'an early receipt is dropped',
      find: "if (row && fate === 'unmatched') await keep(row)",
      replace: "if (row && fate === 'repeated') await keep(row)",
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: 'a receipt that was applied is kept for ever',
      find: 'rows.filter(({ isOver }, index) => isOver || fates[index]',
      replace: 'rows.filter(({ isOver }, index) => isOver && fates[index]',
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: 'a receipt that fits nothing is kept for ever',
      find: `received_at <= now() - $2 * interval '1 millisecond' AS "isOver"`,
      replace: `received_at <= now() - 24 * $2 * interval '1 millisecond' AS "isOver"`,
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: 'a message id of any bytes is believed',
      find: 'messageId: isForeignId(messageId) ? messageId : null,',
      replace: 'messageId: messageId ?? null,',
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: 'the last of several early receipts has the first word',
      find: 'FROM again ORDER BY received_at`',
      replace: 'FROM again ORDER BY received_at DESC`',
      tests: ['test/receipt/receipts'],
    },
    {
      breaks: 'a receipt without any id is taken',
      find: 'return row.messageId === null && row.noticeId === null ? undefined : row',
      replace: 'return row.messageId === null && row.noticeId === null ? row : row',
      tests: ['test/receipt/receipts'],
    },
    // Retention
    {
      breaks: 'the erasure skips rows after an open one',
      find: 'if (firstKept >= 0) done ??= step[firstKept - 1]?.id ?? reached',
      replace: 'if (firstKept >= 0) break',
      tests: ['test/upkeep/retention'],
    },
    {
      breaks: 'the erasure never comes back to an open row',
      find: '[done ?? reached])',
      replace: '[reached])',
      tests: ['test/upkeep/retention'],
    },
    {
      breaks: 'the recipient of an open notice is erased',
      find: 'WHERE notice.id = step.id AND NOT step.is_kept AND notice.recipient IS NOT NULL',
      replace: 'WHERE notice.id = step.id AND notice.recipient IS NOT NULL',
      tests: ['test/upkeep/retention'],
    },
    {
      breaks: 'an open row is deleted',
      find: 'WHERE old.id = step.id AND old.due_at IS NULL\n',
      replace: 'WHERE old.id = step.id\n',
      tests: ['test/upkeep/retention'],
    },
    {
      breaks: 'a row goes by the clock in its id',
      find: "      AND old.created_at < now() - $4 * interval '1 millisecond'\n",
      replace: '      AND $4::float8 > 0\n',
      tests: ['test/upkeep/retention'],
    },
    {
      breaks: 'a month is dropped a month early',
      find: 'const endsAtMs = Date.UTC(Number(month[1]), Number(month[2]))',
      replace: 'const endsAtMs = Date.UTC(Number(month[1]), Number(month[2]) - 1)',
      tests: ['test/upkeep/retention'],
    },
    {
      breaks: 'a month with an open row is dropped',
      find: 'IF NOT EXISTS (SELECT FROM ${name} WHERE due_at IS NOT NULL) THEN',
      replace: 'IF true THEN',
      tests: ['test/upkeep/retention'],
    },
    {
      breaks: 'a step that fails ends the pass',
      find: '      if (!isStopped()) log.backgroundFailed(`retention, ${what}`, error)',
      replace: '      log.backgroundFailed(`retention, ${what}`, error)\n      throw error',
      tests: ['test/upkeep/retention'],
    },
    {
      breaks: 'only one batch of old rows goes in each pass',
      find: 'for (let from: string | undefined = idFloor(0); from && !isStopped(); ) {',
      replace:
        'for (let from: string | undefined = idFloor(0), once = true; from && once; once = false) {',
      tests: ['test/upkeep/retention'],
    },
    // Idempotency
    {
      breaks: 'an Idempotency-Key is shared by all apps',
      find: 'WHERE app = $1 AND key_hash = $2 AND NOT EXISTS (SELECT FROM mine)',
      replace: 'WHERE app <> $1 AND key_hash = $2 AND NOT EXISTS (SELECT FROM mine)',
      tests: ['test/idempotency/idempotency'],
    },
    {
      breaks: 'another body under the same key gets the first answer',
      find: "      if (!row.requestHash.equals(requestHash)) return { kind: 'reused' }\n",
      replace: '',
      tests: ['test/idempotency/idempotency'],
    },
    {
      breaks: 'a reservation is taken over after three seconds',
      find: 'const takeOverAfterMs = 30_000',
      replace: 'const takeOverAfterMs = 3_000',
      tests: ['test/idempotency/idempotency'],
    },
    {
      breaks: 'a take-over ignores what the first asked for',
      find: 'OR (old.answer IS NULL AND old.request_hash = excluded.request_hash',
      replace: 'OR (old.answer IS NULL',
      tests: ['test/idempotency/idempotency'],
    },
    {
      breaks: 'an answered key is taken over',
      find: 'OR (old.answer IS NULL AND old.request_hash',
      replace: 'OR (old.request_hash',
      tests: ['test/idempotency/idempotency'],
    },
    {
      breaks: 'a refused request frees a key that was answered',
      find: '  WHERE app = $1 AND key_hash = $2 AND notice_id = $3 AND answer IS NULL\n',
      replace: '  WHERE app = $1 AND key_hash = $2 AND notice_id = $3\n',
      tests: ['test/idempotency/idempotency'],
    },
    {
      breaks: 'a key is freed while its notice is open',
      find: "    AND NOT EXISTS (SELECT FROM notice WHERE id = $3 AND state NOT IN ('failed', 'expired'))\n",
      replace: '',
      tests: ['test/idempotency/idempotency'],
    },
  ],
}
