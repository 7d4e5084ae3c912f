/** The languages of all texts for people, and the only list of them. The keys of en.json are the names of all texts. */
import de from './de.json' with { type: 'json' }
import en from './en.json' with { type: 'json' }
import zh from './zh.json' with { type: 'json' }

export const languages = { en, de, zh }
