import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BIN } from './helpers/processes.ts'

const OLD_NODE = '/usr/bin/node'

/** An older Node of the machine; null if it has none. */
function oldNode(): string | null {
  if (!fs.existsSync(OLD_NODE)) return null
  const { stdout } = spawnSync(OLD_NODE, ['--version'], { encoding: 'utf8' })
  return Number.parseInt(stdout.slice(1), 10) < 24 ? OLD_NODE : null
}

function run(node: string, env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(node, [BIN, '--version'], { env, encoding: 'utf8' })
  return { status, stdout, stderr }
}

describe('the program', () => {
  it.runIf(oldNode())('says which Node it needs, and runs nothing with an older one', () => {
    const { status, stdout, stderr } = run(oldNode() ?? '')

    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toMatch(
      /^admin-mirror needs Node 24 or newer, and this is Node \d+\.\d+\.\d+: .*npx admin-mirror"\n$/,
    )
  })

  it('runs nothing where Node would print headers and the tokens in them', () => {
    expect(run(process.execPath, { NODE_DEBUG: 'http' })).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/^NODE_DEBUG is set: .*\n$/),
    })
  })
})
