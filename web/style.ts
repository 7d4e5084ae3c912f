/**
 * The style of the field, adopted as a constructed sheet, which needs no `unsafe-inline`. Every colour and size is a
 * variable, and every part has a class.
 */
const css = `
postern-code {
  --_accent: var(--postern-accent, light-dark(#2450d8, #8fb0ff));
  --_on-accent: var(--postern-on-accent, light-dark(#fff, #0c1530));
  --_text: var(--postern-text, light-dark(#151a26, #eceff6));
  --_muted: var(--postern-muted, light-dark(#566074, #a3adc0));
  --_surface: var(--postern-surface, light-dark(#fff, #171c27));
  --_border: var(--postern-border, light-dark(#7b8494, #77808f));
  --_wrong: var(--postern-wrong, light-dark(#b3261e, #ffa69e));
  --_right: var(--postern-right, light-dark(#136c3a, #72d89c));
  --_radius: var(--postern-radius, 10px);
  --_height: var(--postern-height, 48px);
  --_gap: var(--postern-gap, 8px);
  display: block;
  container-type: inline-size;
  color: var(--_text);
  font-family: var(--postern-font, inherit);
  font-size: var(--postern-font-size, 16px);
  line-height: 1.4;
  text-align: start;

  > :not(.postern-field), [hidden] { display: none !important }
  * { box-sizing: border-box }
  .postern-field {
    display: grid;
    grid-template: "label label" "input send" "message message" "links links" "challenge challenge" / minmax(0, 1fr) auto;
    column-gap: var(--_gap);
    font-variant-numeric: tabular-nums;
  }
  .postern-step { display: contents; visibility: hidden }
  [data-step=address] .postern-step:first-child, [data-step=code] .postern-step:nth-child(2), [data-step=filled] .postern-step:nth-child(2), [data-step=filled] .postern-button { visibility: visible }
  .postern-waiting * { visibility: hidden !important }
  .postern-label { grid-area: label; align-self: end; margin: 0 0 6px; font-size: .9375em; font-weight: 500; overflow-wrap: anywhere }
  .postern-input, .postern-button, .postern-digit, .postern-picker {
    height: var(--_height);
    margin: 0;
    border: 1px solid var(--_border);
    border-radius: var(--_radius);
    background: var(--_surface);
    color: var(--_text);
    font: inherit;
  }
  .postern-to, .postern-digits { grid-area: input; display: flex; gap: var(--_gap) }
  .postern-input { flex: 1; min-width: 0; padding: 0 14px; appearance: none }
  .postern-country { position: relative; display: flex; align-items: center }
  .postern-picker { min-width: 4.75em; padding-inline: 12px 26px }
  .postern-picker::after { content: ""; position: absolute; inset-inline-end: 12px; width: 6px; height: 6px; margin-top: -4px; border: solid var(--_muted); border-width: 0 2px 2px 0; rotate: 45deg }
  .postern-countries, .postern-code { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; padding: 0; border: 0; font: inherit }
  .postern-countries { opacity: 0; cursor: pointer }
  .postern-button {
    grid-area: send;
    min-width: 9em;
    padding: 0 16px;
    border-color: transparent;
    background: var(--_accent);
    color: var(--_on-accent);
    font-weight: 600;
    cursor: pointer;
    transition: background-color .15s, color .15s;
  }
  .postern-to[hidden] ~ .postern-button { grid-area: input; justify-self: start }
  .postern-button:hover { background: color-mix(in srgb, var(--_accent) 88%, var(--_text)) }
  .postern-button[aria-disabled=true] { background: color-mix(in srgb, var(--_muted) 14%, transparent) }
  .postern-input:focus-visible, .postern-button:focus-visible, .postern-link:focus-visible, .postern-country:focus-within, .postern-active {
    outline: 2px solid var(--_accent);
    outline-offset: 2px;
  }
  .postern-input:focus-visible, .postern-country:focus-within, .postern-active { outline-offset: -1px; border-color: var(--_accent) }
  .postern-digits { position: relative }
  [data-step=code] .postern-digits { grid-column: 1 / -1 }
  [data-step=filled] .postern-step .postern-button { grid-area: send }
  .postern-digit {
    display: grid;
    flex: 0 1 var(--_height);
    min-width: 0;
    place-items: center;
    font-size: 1.375em;
    font-weight: 600;
  }
  .postern-digit:not(:empty) { animation: postern-fill .15s calc(var(--_turn) * 50ms) backwards }
  .postern-digits::after { content: "\\2713" / ""; visibility: hidden; align-self: center; width: 1em; color: var(--_right); font-size: 1.375em; font-weight: 700 }
  &:dir(rtl) .postern-digits { justify-content: end }
  &:dir(rtl) .postern-digits::after { order: -1 }
  .postern-code {
    z-index: 1;
    outline: 0;
    background: none;
    color: transparent;
    caret-color: transparent;
    letter-spacing: 1.5em;
    forced-color-adjust: none;
    appearance: none;
  }
  .postern-code::selection { background: none }
  .postern-code:autofill { -webkit-text-fill-color: transparent; transition: background-color 1s 9999s }
  .postern-active:empty::after { content: ""; width: 2px; height: 45%; background: var(--_accent); animation: postern-blink 1.1s step-end infinite }
  .postern-input[aria-invalid=true], .postern-code[aria-invalid=true] ~ .postern-digit { border-color: var(--_wrong) }
  [data-tone=wrong] .postern-code[aria-invalid=true] ~ .postern-digit { animation: postern-shake .3s }
  .postern-closed .postern-digit { opacity: .45 }
  .postern-message { grid-area: message; display: flex; gap: 8px; min-height: 2.8em; margin: 8px 0 0; font-size: .875em; color: var(--_muted) }
  .postern-message::before { flex: none; width: 1.2em; height: 1.2em; margin-top: .1em; border-radius: 50%; text-align: center }
  [data-tone=wrong] .postern-message { color: var(--_wrong) }
  [data-tone=wrong] .postern-message::before { content: "!" / ""; background: var(--_wrong); color: var(--_surface); font-weight: 700; line-height: 1.2 }
  [data-tone=busy] .postern-message::before { content: "" / ""; border: 2px solid color-mix(in srgb, var(--_accent) 30%, transparent); border-top-color: var(--_accent); animation: postern-turn .8s linear infinite }
  .postern-challenge { grid-area: challenge }
  .postern-challenge:not(:empty) { margin-top: 8px }
  .postern-links { grid-area: links; display: flex; flex-wrap: wrap; gap: 8px 20px; min-height: 24px; margin-top: 8px }
  .postern-link {
    min-height: 24px;
    margin: 0;
    padding: 0;
    border: 0;
    border-radius: 4px;
    background: none;
    color: var(--_accent);
    font: inherit;
    font-size: .875em;
    text-align: start;
    text-decoration: underline;
    text-underline-offset: 3px;
    cursor: pointer;
  }
  [aria-disabled=true] { color: var(--_muted); text-decoration: none; cursor: default }
  .postern-passed {
    .postern-links { visibility: hidden }
    .postern-message { color: var(--_right); font-weight: 600 }
    .postern-digit { border-color: var(--_right); color: var(--_right); animation: postern-right .3s calc(var(--_turn) * 90ms) backwards }
    .postern-digits::after { visibility: visible; animation: postern-fill .3s calc(var(--_turn) * 90ms) backwards }
  }
  @container (max-width: 27em) {
    .postern-field { grid-template: "label" "input" "send" minmax(calc(var(--_height) + 8px), auto) "message" "links" "challenge" / minmax(0, 1fr) }
    .postern-to:not([hidden]) ~ .postern-button { margin-top: 8px }
    .postern-digit { flex-grow: 1 }
    .postern-message { min-height: 4.2em }
    [data-step=code] .postern-message { grid-row: send }
    [data-step=code] .postern-links { grid-row: message / links; min-height: calc(var(--_height) + 32px) }
    .postern-again { flex: 0 0 100%; min-height: var(--_height) }
  }
  @media (prefers-reduced-motion: reduce) {
    *, ::before, ::after { animation: none !important; transition: none !important }
  }
  @media (forced-colors: active) {
    --_on-accent: CanvasText;
    .postern-active, .postern-passed .postern-digit { border-color: Highlight }
    .postern-active:empty::after { background: CanvasText }
    .postern-link { color: LinkText }
    [aria-disabled=true], .postern-closed .postern-digit { border-color: GrayText; color: GrayText; opacity: 1 }
    .postern-input[aria-invalid=true], .postern-code[aria-invalid=true] ~ .postern-digit { border: 3px dashed CanvasText }
    [data-tone=busy] .postern-message::before { border-color: GrayText; border-top-color: Highlight }
  }
}
@keyframes postern-fill { from { color: transparent; transform: scale(.9) } }
@keyframes postern-right { from { border-color: var(--_border); color: var(--_text) } }
@keyframes postern-blink { 50% { opacity: 0 } }
@keyframes postern-turn { to { transform: rotate(1turn) } }
@keyframes postern-shake { 25% { transform: translateX(-4px) } 75% { transform: translateX(4px) } }
`

let sheet: CSSStyleSheet | undefined

/** Adds the style once per document or shadow root. */
export function adoptStyle(root: Node): void {
  if (!sheet) {
    sheet = new CSSStyleSheet()
    sheet.replaceSync(css)
  }
  const holder = root as Document
  if (!holder.adoptedStyleSheets.includes(sheet)) holder.adoptedStyleSheets.push(sheet)
}
