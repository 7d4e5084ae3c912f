/** For rooms that ask who is a test recipient: nobody is. */
import { createTestRecipients } from '../../src/recipient/test-recipients.ts'

export const noTestRecipients = createTestRecipients({ recipients: [] }, { nowMs: Date.now })
