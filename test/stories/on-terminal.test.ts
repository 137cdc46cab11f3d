import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import { hasTerminal, onTerminal } from '../helpers/processes.ts'
import { ACME, createScene, GLOBEX } from '../helpers/scene.ts'

const ESCAPE = '\u001b'

describe.runIf(hasTerminal)('a sync on a terminal', () => {
  it.each([
    ['draws progress', 'xterm', true],
    ['sends no escapes to one that knows none', 'dumb', false],
  ])('%s, and ends with how each list ended', async (_, term, draws) => {
    const { workspace } = await createScene({ settings: { organizations: [ACME, GLOBEX] } })

    const shown = await onTerminal(['sync'], workspace, term)

    expect(shown.includes(ESCAPE)).toBe(draws)
    expect(/acme orders +(waits for its first page|page \d)/.test(shown)).toBe(draws)
    expect(stripVTControlCharacters(shown).trimEnd().split('\n').at(-1)).toMatch(
      /(acme|globex) orders run finished: 3 pages, 4 new, 0 changed, steady$/,
    )
  })
})
