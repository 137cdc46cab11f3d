import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { BIN, LOCKED_NODE } from '../helpers/processes.ts'
import { createScene } from '../helpers/scene.ts'
import { tempFolder } from '../helpers/temp-folder.ts'

// Which version it is, wherever somebody asks; and what makes a release of it.

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

  it('is told without loading what only other commands need', () => {
    const folder = tempFolder()
    const loaded = path.join(folder, 'loaded')
    const hook = path.join(folder, 'hook.mjs')
    fs.writeFileSync(
      hook,
      `import fs from 'node:fs'
      import { registerHooks } from 'node:module'
      registerHooks({ load(url, context, next) { fs.appendFileSync(${JSON.stringify(loaded)}, url + '\\n'); return next(url, context) } })`,
    )

    const { stdout } = spawnSync(LOCKED_NODE, ['--import', hook, BIN, '--version'], { encoding: 'utf8' })

    expect(stdout).toBe(`${version}\n`)
    const modules = fs.readFileSync(loaded, 'utf8').split('\n')
    expect(modules).toContain(pathToFileURL(path.join(ROOT, 'src/main.ts')).href)
    expect(modules.filter((url) => /node_modules[/](?!commander)|src[/](config|store)/.test(url))).toEqual([])
  })

  it.each([[['sync']], [['rebuild']]])(
    'is that of the program which used the mirror last: %s',
    async (args) => {
      const { workspace } = await createScene()
      await workspace.run(['sync'])
      workspace.change("UPDATE sync_settings SET value = '0.9.0' WHERE name = 'program'")

      await workspace.run(args)

      expect(workspace.value(PROGRAM)).toBe(version)
    },
  )

  it('has its part of the change log, and is that of the lockfile and of the examples', () => {
    expect(textIn('CHANGELOG.md')).toContain(`\n## ${version}\n`)
    expect(JSON.parse(textIn('package-lock.json')).packages[''].version).toBe(version)
    expect(textIn('config/kubernetes.example.yaml')).toContain(`image: admin-mirror:${version}\n`)
  })
})

interface Step {
  uses?: string
  run?: string
  env?: object
  with?: object
}

interface Workflow {
  permissions: object
  jobs: Record<string, { 'timeout-minutes'?: number; permissions?: object; steps: Step[] }>
}

describe.each(['tests', 'release'])('the workflow %s', (name) => {
  const text = fs.readFileSync(path.join(ROOT, `.github/workflows/${name}.yml`), 'utf8')
  const { permissions, jobs } = parse(text) as Workflow
  const steps = Object.values(jobs).flatMap((job) => job.steps)

  it('has no secret, and may write nothing but what it makes', () => {
    expect(text).not.toMatch(/secrets\.|password|npm_token/i)
    expect(permissions).toEqual({ contents: 'read' })
    const own = Object.values(jobs).flatMap((job) => Object.keys(job.permissions ?? {}))
    expect(own).toEqual(name === 'release' ? ['contents', 'id-token', 'attestations'] : [])
  })

  it('uses actions by their commits, ends, and puts no text of others into a command', () => {
    const used = steps.flatMap(({ uses }) => uses ?? [])
    expect(used.length).toBeGreaterThan(0)
    expect(used.filter((action) => !/^actions\/[\w-]+@[0-9a-f]{40}$/.test(action))).toEqual([])
    expect(Object.values(jobs).filter((job) => job['timeout-minutes'] === undefined)).toEqual([])
    expect(steps.filter(({ run }) => run?.includes('${{'))).toEqual([])
  })

  it('runs scripts that the project has', () => {
    const scripts = steps.flatMap(({ run = '' }) =>
      [...run.matchAll(/npm (?:run )?(\w+)/g)].map(([, script]) => script),
    )
    const known = new Set([...Object.keys(manifest.scripts), 'ci'])
    expect(scripts.length).toBeGreaterThan(0)
    expect(scripts.filter((script) => !known.has(script ?? ''))).toEqual([])
  })
})
