import { describe, expect, it } from 'vitest'
import { type Asked, items, pageOf, serve } from '../helpers/list-server.ts'
import { hasTerminal, onTerminal } from '../helpers/on-terminal.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'

const ITEMS = items(4)
const ESCAPE = '\u001b'

describe.runIf(hasTerminal)('a sync on a terminal', () => {
  it.each([
    ['draws progress', 'xterm', true],
    ['sends no escapes to one that knows none', 'dumb', false],
  ])('%s, and ends with its sums', async (_, term, draws) => {
    const server = await serve((asked: Asked) => pageOf(ITEMS, asked))
    const organizations = [organization('acme', 1), organization('globex', 2)]
    const workspace = createWorkspace({ baseUrl: server.url, organizations })

    const shown = await onTerminal(['sync'], workspace, term)

    expect(shown.includes(ESCAPE)).toBe(draws)
    expect(shown.includes('lists: ')).toBe(draws)
    expect(shown.trimEnd().split('\n').at(-1)).toMatch(
      /\d lists in .*: all ended well; \d+ rows new, 0 changed, 0 removed; \d+ requests$/,
    )
  })
})
