/** For tests without test recipients. */
import { createTestRecipients } from '../../src/recipient/test-recipients.ts'

export const noTestRecipients = createTestRecipients({ recipients: [] }, { nowMs: Date.now })
