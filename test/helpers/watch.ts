/** Waits for what is there, or comes later. */
export function createWatch() {
  const looks = new Set<() => void>()
  return {
    /** Something may have come. */
    changed(): void {
      for (const look of looks) look()
    },
    /** What `find` finds, as soon as it is there. Rejects with what it throws. */
    until: <T>(find: () => T | undefined): Promise<T> =>
      new Promise((resolve, reject) => {
        const look = () => {
          try {
            const found = find()
            if (found === undefined) return
            resolve(found)
          } catch (error) {
            reject(error)
          }
          looks.delete(look)
        }
        looks.add(look)
        look()
      }),
  }
}
