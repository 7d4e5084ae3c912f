import { test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { secret, shuffleReceipts } from './receipt-calls.ts'

test('10,000 receipts shuffled, doubled, too early, contradicted by forgers: every shuffle ends in the same table (I12, F21)', async () => {
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      providers: { carrier: { kind: 'webhook', url: 'http://127.0.0.1:9/send', secret } },
      routes: { sms: [{ use: ['carrier'] }] },
    },
  })
  await shuffleReceipts(postern, 1_250)
}, 120_000)
