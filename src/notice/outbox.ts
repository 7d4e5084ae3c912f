/**
 * Events about notices are written by the statement that moves the row, so there is never a move
 * without its event nor an event without its move, whenever a process dies. Carrying them is the work
 * of event-outbox.ts.
 */
import type { EventType } from '../base/event-types.ts'

/** The types a statement may write; none when no receiver is configured. */
export type WantedEvents = readonly EventType[]

/**
 * A further part of a statement `WITH … moved AS (UPDATE notice … RETURNING notice.*)`: writes events of
 * the wanted types for the rows it moves.
 */
export function insertEvents(types: WantedEvents = []): string {
  const wanted = types.filter((type) => type.startsWith('notice.'))
  if (wanted.length === 0) return ''
  return `, told AS (
    INSERT INTO event (app, type, data)
    SELECT app, 'notice.' || state, ${eventData}
    FROM moved WHERE 'notice.' || state IN (${wanted.map((type) => `'${type}'`).join(', ')})
  )`
}

/** Masked as in src/recipient/mask-recipient.ts: here, because a readable recipient never enters an event. */
export const maskedRecipient = `
  CASE WHEN channel = 'email'
    THEN left(recipient, 1) || '***@' || split_part(recipient, '@', -1)
    ELSE left(recipient, least(5, greatest(2, length(recipient) - 8))) || '****'
      || right(recipient, least(4, greatest(0, length(recipient) - 6)))
  END`

const eventData = `jsonb_strip_nulls(jsonb_build_object(
      'id', id, 'channel', channel, 'to', ${maskedRecipient}, 'kind', kind, 'scene', scene,
      'template', template, 'state', state, 'provider', provider,
      'providerMessageId', provider_message_id, 'error', error))`
