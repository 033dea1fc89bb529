"""python -m lasthop"""

from lasthop.cli import main

main()
