/**
 * Events about notices are written by the statement that moves the row. So a move and its event are both written or
 * both missing, whenever a process dies. event-outbox.ts delivers the events.
 */
import type { EventType } from '../base/event-types.ts'
import { byChannelSql } from '../recipient/channels.ts'

/** The event types to write; none without a configured receiver. */
export type WantedEvents = readonly EventType[]

/**
 * Another part of the statement `WITH … moved AS (UPDATE notice … RETURNING notice.*)`. It writes events of the wanted
 * types for the moved rows.
 */
export function insertEvents(types: WantedEvents = []): string {
  const wanted = types.filter((type) => type.startsWith('notice.'))
  if (wanted.length === 0) return ''
  return `, written AS (
    INSERT INTO event (app, type, data, trace_parent)
    SELECT app, 'notice.' || state, ${eventData}, trace_parent
    FROM moved WHERE 'notice.' || state IN (${wanted.map((type) => `'${type}'`).join(', ')})
  )`
}

/** Masks as answers do. Done in SQL, so that a readable recipient never enters an event. */
export const maskedRecipient = byChannelSql('channel', (kind) => kind.maskSql('recipient'))

const eventData = `jsonb_strip_nulls(jsonb_build_object(
      'id', id, 'channel', channel, 'to', ${maskedRecipient}, 'kind', kind, 'scene', scene,
      'template', template, 'state', state, 'provider', provider,
      'providerMessageId', provider_message_id, 'error', error))`
