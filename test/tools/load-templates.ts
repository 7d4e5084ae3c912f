import { readTemplates, type Templates } from '../../src/notice/templates.ts'

/** The templates of a folder. Throws an Error with their problems. */
export function loadTemplates(folder: string): Templates {
  const read = readTemplates(folder)
  if ('problems' in read) throw new Error(read.problems.join('\n'))
  return read
}
