/** The page of the rules of countries, made from their data at each build. */
import {
  type About,
  countries,
  type Fact,
  factWords,
  onlyRegistered,
  rulesOf,
  senderWords,
} from '../src/sms-rules/index.ts'

/** Sources contain characters that Markdown and Vue read as their own. */
const plain = (text: string) =>
  text.replace(/[<>{}[\]*_`$#]/g, (char) => `&#${char.codePointAt(0)};`)

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
      template?.is === 'registered' ? onlyRegistered(template.unregistered) : '',
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
