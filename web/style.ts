/**
 * The style of the field, adopted as a constructed sheet, which needs no `unsafe-inline`. Every colour and size is a
 * variable, and every part has a class.
 */
const css = `
postern-code {
  --_accent: var(--postern-accent, light-dark(#2450d8, #8fb0ff));
  --_on-accent: var(--postern-on-accent, light-dark(#fff, #0c1530));
  --_text: var(--postern-text, light-dark(#171b26, #eceff6));
  --_muted: var(--postern-muted, light-dark(#565d70, #a5adc0));
  --_surface: var(--postern-surface, light-dark(#fff, #171b25));
  --_border: var(--postern-border, light-dark(#828a9c, #737c91));
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
}
postern-code > :not(.postern-field) { display: none }
postern-code .postern-field, postern-code .postern-field * { box-sizing: border-box }
postern-code [hidden] { display: none !important }
postern-code .postern-steps { display: grid }
postern-code .postern-step { grid-area: 1 / 1; min-width: 0; visibility: hidden; display: flex; flex-direction: column; justify-content: end }
postern-code [data-step=address] .postern-step:first-child, postern-code [data-step=code] .postern-step:last-child { visibility: visible }
postern-code .postern-label { display: block; margin: 0 0 6px; font-size: .9375em; font-weight: 500; overflow-wrap: anywhere; color: var(--_text) }
postern-code .postern-row { display: flex; flex-wrap: wrap; gap: var(--_gap) }
postern-code .postern-input, postern-code .postern-button, postern-code .postern-digit {
  height: var(--_height);
  margin: 0;
  border: 1px solid var(--_border);
  border-radius: var(--_radius);
  background: var(--_surface);
  color: var(--_text);
  font: inherit;
}
postern-code .postern-to { display: flex; flex: 1 1 12em; gap: var(--_gap); min-width: 0 }
postern-code .postern-input { flex: 1 1 auto; min-width: 0; width: 0; padding: 0 14px; appearance: none }
postern-code .postern-country { position: relative; display: flex; flex: none; align-items: center; height: var(--_height); font-variant-numeric: tabular-nums }
postern-code .postern-picker { min-width: 4.75em; padding-inline: 12px 26px; border: 1px solid var(--_border); border-radius: var(--_radius); background: var(--_surface) }
postern-code .postern-picker::after { content: ""; position: absolute; inset-inline-end: 12px; width: 6px; height: 6px; margin-top: -4px; border: solid var(--_muted); border-width: 0 2px 2px 0; rotate: 45deg }
postern-code .postern-countries { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; border: 0; opacity: 0; font: inherit; cursor: pointer }
postern-code .postern-button {
  flex: 0 0 auto;
  width: auto;
  min-width: 9em;
  padding: 0 16px;
  border-color: transparent;
  background: var(--_accent);
  color: var(--_on-accent);
  font-weight: 600;
  font-variant-numeric: tabular-nums;
  cursor: pointer;
  transition: background-color .15s, color .15s;
}
postern-code .postern-button:hover { background: color-mix(in srgb, var(--_accent) 88%, var(--_text)) }
postern-code .postern-again { border-color: var(--_border); background: transparent; color: var(--_accent) }
postern-code .postern-again:hover { background: color-mix(in srgb, var(--_accent) 10%, transparent) }
postern-code .postern-button[aria-disabled=true] {
  border-color: transparent;
  background: color-mix(in srgb, var(--_muted) 14%, transparent);
  color: var(--_muted);
  cursor: default;
}
postern-code .postern-input:focus-visible, postern-code .postern-button:focus-visible, postern-code .postern-link:focus-visible, postern-code .postern-country:focus-within, postern-code .postern-active {
  outline: 2px solid var(--_accent);
  outline-offset: 2px;
}
postern-code .postern-input:focus-visible, postern-code .postern-country:focus-within, postern-code .postern-active { outline-offset: -1px; border-color: var(--_accent) }
postern-code .postern-digits { position: relative; display: flex; flex: 1 1 12em; gap: var(--_gap); min-width: 0 }
postern-code:dir(rtl) .postern-digits { justify-content: end }
postern-code .postern-digit {
  display: grid;
  flex: 0 1 var(--_height);
  min-width: 0;
  place-items: center;
  font-size: 1.375em;
  font-weight: 600;
  font-variant-numeric: tabular-nums;
}
postern-code .postern-code {
  position: absolute;
  inset: 0;
  z-index: 1;
  width: 100%;
  height: 100%;
  margin: 0;
  padding: 0;
  border: 0;
  outline: 0;
  background: transparent;
  color: transparent;
  caret-color: transparent;
  font: inherit;
  letter-spacing: 1.5em;
  forced-color-adjust: none;
  appearance: none;
}
postern-code .postern-code::selection { background: transparent }
postern-code .postern-code:autofill { -webkit-text-fill-color: transparent; transition: background-color 1s 9999s }
postern-code .postern-active:empty::after { content: ""; width: 2px; height: 45%; background: var(--_accent); animation: postern-blink 1.1s step-end infinite }
postern-code .postern-input[aria-invalid=true], postern-code .postern-code[aria-invalid=true] ~ .postern-digit { border-color: var(--_wrong) }
postern-code [data-tone=wrong] .postern-code[aria-invalid=true] ~ .postern-digit { animation: postern-shake .3s }
postern-code .postern-closed .postern-digit { opacity: .45 }
postern-code .postern-passed .postern-digit { border-color: var(--_right); color: var(--_right) }
postern-code .postern-passed .postern-again { visibility: hidden }
postern-code .postern-message {
  display: flex;
  gap: 8px;
  min-height: 2.8em;
  margin: 8px 0 0;
  font-size: .875em;
  color: var(--_muted);
}
postern-code .postern-message::before { box-sizing: border-box; flex: none; width: 1.2em; text-align: center; content: "" / "" }
postern-code [data-tone=plain] .postern-message::before { display: none }
postern-code [data-tone=wrong] .postern-message { color: var(--_wrong) }
postern-code [data-tone=wrong] .postern-message::before { content: "!" / ""; height: 1.2em; margin-top: .1em; border-radius: 50%; background: var(--_wrong); color: var(--_surface); font-weight: 700; line-height: 1.2 }
postern-code [data-tone=right] .postern-message { color: var(--_right); font-weight: 600 }
postern-code [data-tone=right] .postern-message::before { content: "\\2713" / "" }
postern-code [data-tone=busy] .postern-message::before { height: 1.2em; margin-top: .1em; border: 2px solid color-mix(in srgb, var(--_accent) 30%, transparent); border-top-color: var(--_accent); border-radius: 50%; animation: postern-turn .8s linear infinite }
postern-code .postern-link[aria-disabled=true] { color: var(--_muted); text-decoration: none; cursor: default }
postern-code .postern-challenge:not(:empty) { margin-bottom: 8px }
postern-code .postern-links { display: flex; flex-wrap: wrap; gap: 4px 20px; min-height: 24px; margin-top: 4px }
postern-code .postern-passed .postern-links { visibility: hidden }
postern-code .postern-link {
  min-height: 24px;
  margin: 0;
  padding: 0;
  border: 0;
  border-radius: 4px;
  background: none;
  color: var(--_accent);
  font: inherit;
  font-size: .875em;
  text-decoration: underline;
  text-underline-offset: 3px;
  cursor: pointer;
}
@container (max-width: 27em) {
  postern-code .postern-to, postern-code .postern-digits { flex-basis: 100% }
  postern-code .postern-button { flex: 1 1 auto }
  postern-code .postern-digit { flex-grow: 1 }
  postern-code .postern-message { min-height: 4.2em }
}
@keyframes postern-blink { 50% { opacity: 0 } }
@keyframes postern-turn { to { transform: rotate(1turn) } }
@keyframes postern-shake { 25% { transform: translateX(-4px) } 75% { transform: translateX(4px) } }
@media (prefers-reduced-motion: reduce) {
  postern-code .postern-field *, postern-code .postern-field ::before, postern-code .postern-field ::after { animation: none !important; transition: none !important }
}
@media (forced-colors: active) {
  postern-code .postern-active { border-color: Highlight }
  postern-code .postern-active:empty::after { background: CanvasText }
}
`

let sheet: CSSStyleSheet | undefined

/** Once per document or shadow root. */
export function adoptStyle(root: Node): void {
  if (!('adoptedStyleSheets' in root)) return
  if (!sheet) {
    sheet = new CSSStyleSheet()
    sheet.replaceSync(css)
  }
  const holder = root as Document
  if (!holder.adoptedStyleSheets.includes(sheet)) holder.adoptedStyleSheets.push(sheet)
}
