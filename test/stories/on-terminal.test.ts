import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import { HAS_TERMINALS, ON_TERMINAL } from '../helpers/processes.ts'
import { ACME, createScene, GLOBEX } from '../helpers/scene.ts'

const ESCAPE = '\u001b'

describe.runIf(HAS_TERMINALS)('a sync on a terminal', () => {
  it.each([
    ['draws progress', 'xterm', true],
    ['sends no escapes to one that knows none', 'dumb', false],
  ])('%s, and ends with how each list ended', async (_, term, draws) => {
    const { workspace } = await createScene({ settings: { organizations: [ACME, GLOBEX] } })

    const env = { TERM: term, NO_COLOR: '1' }

    const { stdout: shown } = await workspace.run(['sync'], { through: ON_TERMINAL, env })

    expect(shown.includes(ESCAPE)).toBe(draws)
    expect(/acme orders +(waits for its first page|page \d)/.test(shown)).toBe(draws)
    expect(stripVTControlCharacters(shown).trimEnd().split('\n').at(-1)).toMatch(
      /(acme|globex) orders run finished: 3 pages, 4 new, 0 changed, steady$/,
    )
  })
})
