import fs from 'node:fs'

/** Has the write-ahead log written to the disk, by a thread of Node's pool: see checkpointer.ts. */
export interface LogFlush {
  /** Once until `reset`, and never twice at a time. */
  begin(): void
  /** After the pages were moved: the log begins anew. */
  reset(): void
}

/**
 * Nobody learns when it is done, or that it failed: SQLite itself makes sure of the log before it moves pages. The log can be
 * opened and closed here, as the mirror's own file could not: SQLite holds no lock on it that would be dropped.
 */
export function createLogFlush(logFile: string): LogFlush {
  let isAsked = false
  let isUnderWay = false
  const end = () => {
    isUnderWay = false
  }
  return {
    begin() {
      if (isAsked || isUnderWay) return
      isAsked = true
      isUnderWay = true
      fs.open(logFile, 'r', (error, handle) => {
        if (error) return end()
        fs.fsync(handle, () => fs.close(handle, end))
      })
    },
    reset() {
      isAsked = false
    },
  }
}
