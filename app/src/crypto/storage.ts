/** What the page keeps in the browser, or in memory where a host's frame refuses storage. */

export interface Storage {
  /** Whether what is written is there again after the page is closed. */
  readonly lasting: boolean;
  read(name: string): string | null;
  write(name: string, value: string | null): void;
}

export function browserStorage(): Storage {
  try {
    // Reading `localStorage` throws in a frame without an origin of its own.
    const kept = window.localStorage;
    kept.setItem("mmp_probe", "1");
    kept.removeItem("mmp_probe");
    return {
      lasting: true,
      read: (name) => kept.getItem(name),
      write: (name, value) =>
        value === null ? kept.removeItem(name) : kept.setItem(name, value),
    };
  } catch {
    return memoryStorage();
  }
}

export function memoryStorage(): Storage {
  const kept = new Map<string, string>();
  return {
    lasting: false,
    read: (name) => kept.get(name) ?? null,
    write: (name, value) => {
      if (value === null) kept.delete(name);
      else kept.set(name, value);
    },
  };
}
