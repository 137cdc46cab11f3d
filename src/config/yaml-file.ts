import { type Document, LineCounter, parseDocument } from 'yaml'
import { ConfigError, type Problem } from './config-error.ts'
import { readRegularFile } from './regular-file.ts'
import { explainYaml } from './yaml-problems.ts'

/** A file that is YAML, and where its lines begin. */
export interface YamlFile {
  document: Document.Parsed
  lines: LineCounter
}

const COPY = 'copy config/admin-mirror.example.yaml to it and fill in what is yours'

/** Reads the file as one YAML document. Throws a ConfigError with every place where it is none. */
export function readYamlFile(file: string): YamlFile {
  return parseYaml(file, decode(file, readBytes(file)))
}

/** Room for 10,000 organizations. */
const LONGEST_FILE = 8 * 1024 * 1024

function readBytes(file: string): Buffer {
  try {
    const bytes = readRegularFile(file, LONGEST_FILE + 1)
    if (bytes.length <= LONGEST_FILE) return bytes
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw new ConfigError(file, [wholeFile(UNREADABLE[code] ?? `cannot be read (${code}).`)])
  }
  throw new ConfigError(file, [
    wholeFile(
      `is larger than ${LONGEST_FILE} bytes. Name the configuration file with --config or ADMIN_MIRROR_CONFIG.`,
    ),
  ])
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: `there is no such configuration file. To make one, ${COPY}; or name another with --config or ADMIN_MIRROR_CONFIG.`,
  EACCES: 'this user may not read the configuration file. Change its permissions, or run as another user.',
  ENOTREG: 'this is a pipe or a device. Write the configuration into a file, and name that.',
  EISDIR: 'this is a folder. Name the configuration file in it.',
  ENOTDIR:
    'a part of this path is no folder. Name the configuration file with --config or ADMIN_MIRROR_CONFIG.',
}

function decode(file: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigError(file, [wholeFile('the configuration file is not UTF-8 text. Save it as UTF-8.')])
  }
}

function parseYaml(file: string, text: string): YamlFile {
  const lines = new LineCounter()
  // Keys given twice are found later, where their key path is known.
  const document = parseDocument(text, {
    lineCounter: lines,
    merge: true,
    uniqueKeys: false,
    prettyErrors: false,
  })
  const problems = syntaxProblems(document, lines, text.split('\n'))
  if (problems.length > 0) throw new ConfigError(file, problems)
  if (!hasContent(document)) {
    throw new ConfigError(file, [wholeFile(`the configuration file is empty. To fill it, ${COPY}.`)])
  }
  return { document, lines }
}

function syntaxProblems(document: Document.Parsed, lines: LineCounter, source: string[]): Problem[] {
  const byLine = new Map<number, Problem>()
  for (const { code, pos } of [...document.errors, ...document.warnings]) {
    const { line, col } = lines.linePos(pos[0])
    // One slip makes the parser stumble several times; the first place of a line is the one that helps.
    if (byLine.has(line)) continue
    byLine.set(line, { key: '', line, column: col, message: explainYaml(code, source[line - 1] ?? '') })
  }
  if (byLine.size === 0 && document.directives.yaml.version !== '1.2') {
    return [wholeFile('the file asks for another version of YAML. Remove the line %YAML.')]
  }
  return [...byLine.values()]
}

function hasContent({ contents }: Document.Parsed): boolean {
  return contents !== null && !('value' in contents && contents.value === null)
}

function wholeFile(message: string): Problem {
  return { key: '', line: null, column: null, message }
}
