/** Gives the pass to the app around the web view. The app sends it to its server. */
function tellApp(type, detail) {
  const message = { type, ...detail }
  // iOS: a WKScriptMessageHandler named `postern`.
  window.webkit?.messageHandlers?.postern?.postMessage(message)
  // Android: an object named `PosternApp` by addJavascriptInterface, which takes text only.
  window.PosternApp?.onMessage(JSON.stringify(message))
}

// #region events
const field = document.querySelector('postern-code')
field.addEventListener('passed', ({ detail: { pass, channel, to } }) =>
  tellApp('passed', { pass, channel, to }),
)
field.addEventListener('refused', ({ detail: { during, problem } }) =>
  tellApp('refused', { during, code: problem.code }),
)
// #endregion events
