# Fill a local repository of Maven: only a run of the tests asks for all that the next one needs.
if [ -f pom.xml ]; then
    mvn -B -q -Dmaven.repo.local="$DGM_PACKAGES/m2" -Dmaven.test.failure.ignore dependency:go-offline test
fi
