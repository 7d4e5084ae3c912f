/**
 * The link of a message opens the page with its code in the fragment. In the browser that asked for the code, the field fills it
 * in and waits for a press, because scanners of mail run scripts. Another browser shows the code and sends nothing.
 *
 * The address of the recipient is only in the session storage of the tab that asked. A new tab asks the other tabs for it.
 */
import type { Parts } from './parts.ts'
import type { Saved } from './saved-code.ts'
import { canType } from './state.ts'

interface Linked {
  code: string
  id: string
}

/** A tab that asked for the code answers at once. */
const answerMs = 500

/** Until a field of the page takes it. */
let arrived: Linked | undefined

/** Takes the code out of the address, also before the page has a field. */
export function readAddress(): void {
  const [, code, id] = /^#postern-code=(\w+)&id=([\w-]+)$/.exec(location.hash) ?? []
  if (!code || !id) return
  history.replaceState(history.state, '', location.href.replace(/#.*/, ''))
  arrived = { code, id }
}

export type CodeLink = ReturnType<typeof createCodeLink>

export function createCodeLink({
  view,
  screen,
  memory,
}: Pick<Parts, 'view' | 'screen' | 'memory'>) {
  const { state, change, complain } = screen
  let tabs: BroadcastChannel | undefined
  let linked: Linked | undefined

  return { take, listen, stop }

  /** Takes the code of a link, unless another field of the page asked for it. */
  function take(): void {
    readAddress()
    if (state.sent) listen()
    if (!arrived || state.isPassed || state.busyWith) return
    const askedBy = memory.askedBy(arrived.id)
    const known = [state.sent, state.left].find((code) => code?.id === arrived?.id)
    if (!known && askedBy && askedBy !== memory.name()) return
    linked = arrived
    arrived = undefined
    if (known) fill({ sent: known })
    else if (askedBy) ask(linked)
    else show()
  }

  function fill(changes: Partial<Saved>): void {
    const { code } = linked as Linked
    linked = undefined
    change({ left: undefined, ...changes })
    memory.save()
    if (!canType(state)) return
    change({ code, filled: code, wrong: '', message: { name: 'filled', tone: 'plain' } })
    view.focus(view.send)
  }

  function ask(asked: Linked): void {
    listen().postMessage(asked.id)
    setTimeout(() => linked === asked && show(), answerMs)
  }

  function show(): void {
    const { code } = linked as Linked
    // A later code has replaced it.
    if (state.sent) complain('gone')
    else change({ message: { name: 'typeThere', values: { code }, detail: code, tone: 'plain' } })
  }

  /** Answers tabs that ask for the state of the code, by its id. */
  function listen(): BroadcastChannel {
    if (!tabs) {
      tabs = new BroadcastChannel(memory.name())
      tabs.onmessage = ({ data }) => {
        if (data.sent) {
          if (linked?.id === data.sent.id) fill(data)
        } else if (canType(state) && state.sent.id === data) tabs?.postMessage(memory.saved())
      }
    }
    return tabs
  }

  function stop(): void {
    tabs?.close()
    tabs = linked = undefined
  }
}
