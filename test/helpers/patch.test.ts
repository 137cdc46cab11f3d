import { describe, expect, it } from 'vitest'
import { createWorkspace, organization } from '../cli/workspace.ts'
import { applyPatches, patchedBy } from './patch.ts'

const PATCH = {
  file: 'src/cli/program.ts',
  find: 'export async function runProgram(',
  replace: "console.error('patched'); export async function runProgram(",
}

describe('a patch', () => {
  it('changes the program while it is loaded', async () => {
    const { run } = createWorkspace({
      baseUrl: 'http://127.0.0.1:9',
      organizations: [organization('acme', 1)],
    })

    const { code, stderr } = await run(['--version'], { env: patchedBy(PATCH) })

    expect(code).toBe(0)
    expect(stderr).toContain('patched')
  })

  it.each(['nothing', 'function run( function run('])('that does not fit is told: %s', (source) => {
    const apply = () => applyPatches([{ ...PATCH, find: 'function run(' }], PATCH.file, source)

    expect(apply).toThrow('places for the patch')
  })

  it('leaves other files alone', () => {
    expect(applyPatches([PATCH], 'src/main.ts', 'nothing')).toBe('nothing')
  })
})
