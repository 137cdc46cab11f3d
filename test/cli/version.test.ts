import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { createScene } from '../helpers/scene.ts'

// Which version it is, wherever somebody asks.

const ROOT = path.resolve(import.meta.dirname, '../..')
const { version } = manifest
const PROGRAM = "SELECT value FROM sync_settings WHERE name = 'program'"

const textIn = (file: string) => fs.readFileSync(path.join(ROOT, file), 'utf8')

describe('the version', () => {
  it('stands in the mirror, in requests and in what status says', async () => {
    const { server, workspace } = await createScene()

    await workspace.run(['sync'])
    const status = await workspace.run(['status', '--json'])

    expect(workspace.value(PROGRAM)).toBe(version)
    expect(JSON.parse(status.stdout)).toMatchObject({ version: 1, program_version: version })
    expect(new Set(server.asked.map(({ headers }) => headers['user-agent']))).toEqual(
      new Set([`admin-mirror/${version}`]),
    )
    expect((await workspace.run(['--version'])).stdout).toBe(`${version}\n`)
  })

  it('is that of the program which used the mirror last', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    workspace.change("UPDATE sync_settings SET value = '0.9.0' WHERE name = 'program'")

    await workspace.run(['sync'])

    expect(workspace.value(PROGRAM)).toBe(version)
  })

  it('has its part of the change log, and is that of the lockfile and of the examples', () => {
    expect(textIn('CHANGELOG.md')).toContain(`\n## ${version}\n`)
    expect(JSON.parse(textIn('package-lock.json')).packages[''].version).toBe(version)
    expect(textIn('config/kubernetes.example.yaml')).toContain(`image: admin-mirror:${version}\n`)
  })
})
