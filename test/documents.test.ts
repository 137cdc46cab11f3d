import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../src/config/config.ts'
import { ERRORS } from '../src/errors.ts'
import { createWorkspace, type Workspace } from './helpers/workspace.ts'
import { withTables } from './reference.ts'

// What the documents say works: links lead somewhere, commands and options exist, queries run on a mirror of the demo.

const ROOT = path.resolve(import.meta.dirname, '..')
const DOCUMENTS = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '')

const textOf = (file: string) => fs.readFileSync(path.join(ROOT, file), 'utf8')
const withoutCode = (text: string) => text.replaceAll(/^```.*?^```$/gms, '')

/** The code blocks of a language, in all documents. */
function blocks(language: string): { file: string; text: string }[] {
  return DOCUMENTS.flatMap((file) =>
    [...textOf(file).matchAll(/^```(\w*)\n(.*?)^```$/gms)]
      .filter(([, name]) => name === language)
      .map(([, , text = '']) => ({ file, text })),
  )
}

/** As forges make an anchor of a heading. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function anchorsOf(file: string): string[] {
  return [...withoutCode(textOf(file)).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchor(heading))
}

describe('the documents', () => {
  it('are there, and the README is short', () => {
    expect(DOCUMENTS).toContain('README.md')
    expect(Buffer.byteLength(textOf('README.md'))).toBeLessThanOrEqual(10_000)
    expect(textOf('config/OPERATING.md').split(/\s+/).length).toBeLessThanOrEqual(2500)
  })

  it('have a reference that is made from the code', async () => {
    const text = textOf('config/REFERENCE.md')

    expect(await withTables(text)).toBe(text)
  })

  it('explain each error code', () => {
    const [, section = ''] = textOf('config/REFERENCE.md').split('## Error codes')
    const explained = [...section.matchAll(/^\| `([A-Z_]+)` \(/gm)].map(([, code]) => code)

    expect(new Set(explained)).toEqual(new Set(Object.keys(ERRORS)))
  })

  it.each(DOCUMENTS)('lead somewhere with every link: %s', (file) => {
    const links = [...withoutCode(textOf(file)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)

    const dead = links.filter((link) => {
      if (/^https?:/.test(link)) return false
      const [target = '', heading] = link.split('#')
      const found = path.posix.normalize(
        path.posix.join(path.posix.dirname(file), target || path.basename(file)),
      )
      if (!fs.existsSync(path.join(ROOT, found))) return true
      return heading !== undefined && !anchorsOf(found).includes(heading)
    })

    expect(dead).toEqual([])
  })

  it.each(DOCUMENTS)('name only files that exist: %s', (file) => {
    const named = [...textOf(file).matchAll(/`((?:src|test)\/[\w./-]+)`/g)].map(([, name = '']) => name)

    expect(named.filter((name) => !fs.existsSync(path.join(ROOT, name)))).toEqual([])
  })
})

describe.concurrent('commands and options in the documents', () => {
  const typed = DOCUMENTS.flatMap((file) => {
    const text = textOf(file)
    const lines = [...text.matchAll(/admin-mirror ([a-z]+)((?: [^`\n|]*)?)/g)]
    const rows = [...text.matchAll(/^\| `([a-z]+)((?: (?:[^`]|\\`)*)?)` \|/gm)]
    return [...lines, ...rows].map(([, command = '', options = '']) => ({ command, options }))
  }).filter(({ command }) => command !== 'npm')
  const commands = [...new Set(typed.map(({ command }) => command))]

  it.each(commands)('exist: %s', async (command) => {
    const { code, stdout, stderr } = await createWorkspace().run([command, '--help'])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const options = typed
      .filter((one) => one.command === command)
      .flatMap((one) => one.options.match(/(?<=[\s[])--[a-z][a-z-]*/g) ?? [])
    expect([...new Set(options)].filter((option) => !stdout.includes(option))).toEqual([])
  })
})

describe('the queries in the documents', () => {
  let workspace: Workspace
  const config = ['--config', 'data/demo/admin-mirror.yaml']

  beforeAll(async () => {
    workspace = createWorkspace(undefined, 'data/demo/mirror.db')
    await workspace.run(['demo'])
  })

  const queries = [
    // Those of config/QUERIES.md: queries.test.ts.
    ...blocks('sql').flatMap(({ file, text }) => (file === 'config/QUERIES.md' ? [] : text.split(/;\s*$/m))),
    ...blocks('console').flatMap(({ text }) =>
      [...text.matchAll(/admin-mirror query "([^"]*)"/g)].map(([, sql = '']) => sql),
    ),
  ].filter((sql) => sql.trim() !== '')

  it.each(queries)('run: %s', async (sql) => {
    const { code, stderr } = await workspace.run(['query', sql, ...config])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })

  it.each(blocks('yaml').filter(({ text }) => text.startsWith('api:')))(
    'configurations are valid: $file',
    ({ text }) => {
      const file = workspace.file('documented.yaml')
      fs.writeFileSync(file, text)

      expect(
        loadConfig(file, { env: { ACME_TOKEN: 'x' }, tokens: 'resolve', nameEnds: [] }).organizations,
      ).toHaveLength(1)
    },
  )
})
