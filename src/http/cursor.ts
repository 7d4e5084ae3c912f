/** A page's cursor is an id with a mark of the app it was given to, so that no app pages with another's. */
import { isId } from '../base/ids.ts'
import { invalid } from './problem.ts'

/** The marks of these values by every secret in use, the newest first. */
export type CursorMarks = (values: readonly string[]) => string[]

export function createCursors(marks: CursorMarks) {
  const marksOf = (app: string, id: string) => marks([app, id])
  return {
    write: (app: string, id: string): string => `${id}.${marksOf(app, id)[0]}`,

    /** The id. Throws Problem when the cursor was not given to this app. */
    read(app: string, cursor: string): string {
      const [id = '', mark = '', ...rest] = cursor.split('.')
      if (!isId(id) || rest.length > 0 || !marksOf(app, id).includes(mark)) {
        throw invalid('cursor', 'is not a cursor of yours')
      }
      return id
    },
  }
}
