"""`python -m aipsy_judge` and the console script."""

from .cli.main import main

if __name__ == "__main__":
    main()
