import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { ERRORS } from '../src/errors.ts'
import { createWorkspace } from './helpers/workspace.ts'
import { withTables } from './reference.ts'

// What the documents name is there: links, files, commands and options, error codes; and the tables of the reference are the code's.

const ROOT = path.resolve(import.meta.dirname, '..')

const FILES = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n')
const DOCUMENTS = FILES.filter((file) => file.endsWith('.md'))

const textOf = (file: string) => fs.readFileSync(path.join(ROOT, file), 'utf8')

/** The anchors of a document, as forges make them of headings. */
function anchorsOf(file: string): string[] {
  const headings = [...textOf(file).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading)
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

describe.each(DOCUMENTS)('%s', (file) => {
  const text = textOf(file)

  it('leads somewhere with every link', () => {
    const links = [...text.matchAll(/\]\((?!https:)([^)\s#]*)#?([^)\s]*)\)/g)]

    const dead = links.filter(([, target = '', heading]) => {
      const found = path.posix.join(path.posix.dirname(file), target || path.basename(file))
      if (!fs.existsSync(path.join(ROOT, found))) return true
      return heading && !anchorsOf(found).includes(heading)
    })

    expect(dead.map(([link]) => link)).toEqual([])
  })

  it('names only files of the code that are there', () => {
    const named = [...text.matchAll(/`([\w./-]+\.[jt]s)`/g)].map(([, name = '']) => name)

    expect(named.filter((name) => !FILES.some((one) => `/${one}`.endsWith(`/${name}`)))).toEqual([])
  })

  it('names only commands and options that exist', async () => {
    const lines = text.matchAll(/admin-mirror ([a-z]+)((?: [^`\n|]*)?)/g)
    const rows = text.matchAll(/^\| `([a-z]+)((?: (?:[^`]|\\`)*)?)` \|/gm)
    for (const [, command = '', typed = ''] of [...lines, ...rows]) {
      const { code, stdout } = await createWorkspace().run([command, '--help'])

      expect({ command, code }).toEqual({ command, code: 0 })
      const options = typed.match(/(?<=[\s[])--[a-z][a-z-]*/g) ?? []
      expect(options.filter((option) => !stdout.includes(option))).toEqual([])
    }
  })
})

describe('the reference', () => {
  it('has the tables that the code makes', async () => {
    const text = textOf('config/REFERENCE.md')

    expect(await withTables(text)).toBe(text)
  })

  it('explains each error code', () => {
    const [, section = ''] = textOf('config/REFERENCE.md').split('## Error codes')
    const explained = [...section.matchAll(/^\| `([A-Z_]+)` \(/gm)].map(([, code]) => code)

    expect(new Set(explained)).toEqual(new Set(Object.keys(ERRORS)))
  })
})
