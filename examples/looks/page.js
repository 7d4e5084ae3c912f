/** Words of the page for the field in index.html. See docs/code-field.md. */
// #region texts
const field = document.querySelector('postern-code')
field.texts = {
  smsLabel: 'Handynummer',
  send: 'Code anfordern',
  wrong: 'Falscher Code. Noch {n} Versuche.',
}
// #endregion texts
