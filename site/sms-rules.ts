/** The page of the rules of countries, made from their data at each build. */
import { countries, type Fact, rulesOf } from '../src/sms-rules/index.ts'

type About<Kind extends Fact['about']> = Extract<Fact, { about: Kind }>

/** Sources contain characters that Markdown and Vue read as their own. */
const plain = (text: string) =>
  text.replace(/[<>{}[\]*_`$#]/g, (char) => `&#${char.codePointAt(0)};`)

const kinds = {
  alphanumeric: 'name',
  long: 'phone number',
  short: 'short code',
  tollFree: 'toll-free number',
}
const parts = {
  ...{ link: 'links', shortLink: 'short links', phoneNumber: 'phone numbers', emoji: 'emoji' },
  ...{ emailAddress: 'mail addresses', webOtp: 'WebOTP', nonGsm: 'other alphabets' },
}

const registered = (then: string | undefined) => `only registered, otherwise ${then}`

function senderWords({ is, unregistered, shownAs }: About<'sender'>): string {
  const shown = shownAs === undefined ? '' : ` by ${shownAs}`
  return `${is === 'registered' ? registered(unregistered) : is}${shown}`
}

function factWords(fact: Fact): string {
  switch (fact.about) {
    case 'sender':
      return `A ${kinds[fact.kind]} as the sender: ${senderWords(fact)}.`
    case 'senderForm': {
      const { minLength, maxLength, characters, pattern, needsLetter } = fact
      const form = [
        minLength && `at least ${minLength} characters`,
        maxLength && `at most ${maxLength} characters`,
        characters &&
          `only ${characters === 'lettersAndDigits' ? 'letters and digits' : characters}`,
        needsLetter && 'at least one letter',
        pattern && `the form ${pattern}`,
      ]
      return `A name has ${form.filter(Boolean).join(', ')}.`
    }
    case 'senderWords':
      return `Names that ${fact.exact === false ? 'contain' : 'are'} ${fact.words.slice(0, 12).join(', ')}${fact.words.length > 12 ? ` and ${fact.words.length - 12} others` : ''}: ${fact.is}.`
    case 'text':
      return `Texts with ${fact.has === 'word' ? `words such as ${fact.words?.join(', ')}` : parts[fact.has]}: ${fact.is === 'registered' ? registered('refused') : fact.is}.`
    case 'textForm':
      return `Texts without ${fact.needs === 'sign' ? 'a signature in 【】' : 'the name of the business'}: ${fact.is}.`
    case 'template':
      return fact.is === 'works'
        ? 'Texts need no registration.'
        : `Texts: ${registered(fact.unregistered)}${fact.tags ? `; each variable has one of the types ${fact.tags.join(', ')}` : ''}.`
    case 'register': {
      const more = [
        fact.takes && `takes ${fact.takes}`,
        fact.costs,
        fact.local && 'local businesses only',
      ]
      return `Register of a ${fact.of}: ${[fact.name, ...more].filter(Boolean).join('; ')}.`
    }
    case 'price':
      return `Price: ${fact.class}.`
    case 'note':
      return fact.text
  }
}

const heads = ['country', 'a name', 'a phone number', 'a short code', 'texts', 'links', 'registers']

/** Shows the rows of the table that have every word of the search. */
const script = [
  '<script setup>',
  "import { ref } from 'vue'",
  "const wanted = ref('')",
  'const shows = (words) => wanted.value.toLowerCase().split(/\\s+/).every((word) => words.includes(word))',
  '</script>',
  '<style scoped>',
  'input { width: 100%; padding: 8px 12px; border: 1px solid var(--vp-c-border); border-radius: 8px }',
  '</style>',
  '',
]

export function smsRulesPage(): string {
  const all = countries().flatMap((country) => rulesOf(country) ?? [])
  const ofKind = <Kind extends Fact['about']>(facts: readonly Fact[], about: Kind) =>
    facts.filter((fact): fact is About<Kind> => fact.about === about)
  const rows = all.map(({ country, name, facts }) => {
    const bySender = (kind: string) =>
      ofKind(facts, 'sender').flatMap((fact) =>
        fact.kind === kind ? [senderWords(fact)] : [],
      )[0] ?? ''
    const [template] = ofKind(facts, 'template')
    const [link] = ofKind(facts, 'text').filter(({ has }) => has === 'link')
    const registers = ofKind(facts, 'register').map(({ of }) => of)
    const cells = [
      ...[bySender('alphanumeric'), bySender('long'), bySender('short')],
      template?.is === 'registered' ? registered(template.unregistered) : '',
      link ? link.is : '',
      [...new Set(registers)].join(', '),
    ]
    const names = ofKind(facts, 'register').map((fact) => fact.name)
    const words = [country, name, ...cells, ...names].join(' ').toLowerCase()
    const shown = `shows('${words.replace(/[^\p{L}\p{N}]+/gu, ' ')}')`
    const toFacts = `<a href="#${country.toLowerCase()}">${plain(name)}</a>`
    return `<tr v-show="${shown}">${[toFacts, ...cells.map(plain)].map((each) => `<td>${each}</td>`).join('')}</tr>`
  })
  const sections = all.flatMap(({ country, name, facts }) => [
    `## ${plain(name)} (${country}) {#${country.toLowerCase()}}`,
    '',
    ...facts.map(
      (fact) =>
        `- ${plain(factWords(fact))} <a href="${encodeURI(decodeURI(fact.source)).replaceAll('"', '%22').replaceAll('&', '&amp;')}" rel="nofollow">${fact.read}</a>`,
    ),
    '',
  ])
  return [
    ...script,
    '# Rules of countries for SMS',
    '',
    `Facts about ${all.length} countries, each with its source and the day on which it was read. They are the package`,
    '`postern-sms-rules`, which checks a message against them.',
    'Rules change, so ask your SMS provider before you rely on one.',
    '',
    '<input v-model="wanted" type="search" aria-label="Search countries" placeholder="Country, register or word">',
    '',
    `<table><thead><tr>${heads.map((head) => `<th scope="col">${head}</th>`).join('')}</tr></thead><tbody>`,
    ...rows,
    '</tbody></table>',
    '',
    ...sections,
  ].join('\n')
}
