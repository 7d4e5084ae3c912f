/**
 * Events about notices are written by the statement that moves the row, so there is never a move
 * without its event nor an event without its move, whenever a process dies. Carrying them is the work
 * of src/events.
 */
import type { EventType } from '../base/event-types.ts'

/** The types a statement may write; none when nobody wants to be told. */
export type AnnouncedTypes = readonly EventType[]

/**
 * `moveSql`, an UPDATE of `notice n` without its RETURNING, made to write events of the wanted types
 * for the rows it moves. It returns the ids of those rows, as it would by itself.
 */
export function announcing(moveSql: string, types: AnnouncedTypes): string {
  const wanted = types.filter((type) => type.startsWith('notice.'))
  if (wanted.length === 0) return `${moveSql} RETURNING n.id`
  const list = wanted.map((type) => `'${type}'`).join(', ')
  return `
  WITH moved AS (${moveSql} RETURNING n.*),
  told AS (
    INSERT INTO event (app, type, data)
    SELECT app, 'notice.' || state, ${eventData}
    FROM moved WHERE 'notice.' || state IN (${list})
  )
  SELECT id FROM moved`
}

/** Masked as in src/base/mask-recipient.ts: here, because a readable recipient never enters an event. */
export const maskedRecipient = `
  CASE WHEN channel = 'email'
    THEN left(recipient, 1) || '***@' || split_part(recipient, '@', -1)
    ELSE left(recipient, least(5, greatest(2, length(recipient) - 8))) || '****' || right(recipient, 4)
  END`

const eventData = `jsonb_strip_nulls(jsonb_build_object(
      'id', id, 'channel', channel, 'to', ${maskedRecipient}, 'kind', kind, 'scene', scene,
      'template', template, 'state', state, 'provider', provider,
      'providerMessageId', provider_message_id, 'error', error))`
