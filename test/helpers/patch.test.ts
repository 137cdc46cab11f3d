import { describe, expect, it } from 'vitest'
import { createWorkspace, organization } from '../cli/workspace.ts'
import { applyPatches, patchedBy } from './patch.ts'

const VERSION = {
  file: 'src/cli/version.ts',
  find: 'export function version(',
  replace: "console.error('patched'); export function version(",
}

describe('a patch', () => {
  it('changes the program while it is loaded', async () => {
    const { run } = createWorkspace({
      baseUrl: 'http://127.0.0.1:9',
      organizations: [organization('acme', 1)],
    })

    const { code, stderr } = await run(['--version'], { env: patchedBy(VERSION) })

    expect(code).toBe(0)
    expect(stderr).toContain('patched')
  })

  it.each(['nothing', 'function version( function version('])('that does not fit is told: %s', (source) => {
    const apply = () => applyPatches([{ ...VERSION, find: 'function version(' }], VERSION.file, source)

    expect(apply).toThrow('places for the patch')
  })

  it('leaves other files alone', () => {
    expect(applyPatches([VERSION], 'src/main.ts', 'nothing')).toBe('nothing')
  })
})
